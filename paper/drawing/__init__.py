"""Figures of the experiments, apart from their computation; all need matplotlib."""
