"""The experiments of the paper, one module each: a frozen config in, a tidy table out."""
