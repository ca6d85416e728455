"""Kernels in C++, the same sources for cores and cards: see `library` for cores and `gpu/launch.py` for cards."""
