"""Finding good actions: samples, local search, and repair. Proves nothing."""
