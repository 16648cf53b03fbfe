"""Figures of the experiments, which need matplotlib."""
