"""What the standard benchmarks share: their arguments, what the machine leaves of a variant, CUDA graphs."""
