"""What everybody registers if everybody does what pays: iterated best responses."""
