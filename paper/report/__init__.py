"""The report: one self-contained page, a section an experiment."""

from .page import Check, Section, build_report, save_section

__all__ = ["Check", "Section", "build_report", "save_section"]
