"""The iCARMA paper's tables and figures, its grid oracle beside certified optima."""
