"""Ring 2, outside the trust base: the kernel's bounds in whole numbers over common denominators.

It answers what ``verify.kernel.box.Exact`` answers, several times as fast; ``--slow`` leaves it out.
Tests hold the two equal on every certificate and every attack in the repository.
"""
