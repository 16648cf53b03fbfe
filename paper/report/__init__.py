"""Report of the experiments: one self-contained HTML page with a section for each experiment."""

from .page import Check, Section, build_report, save_section

__all__ = ["Check", "Section", "build_report", "save_section"]
