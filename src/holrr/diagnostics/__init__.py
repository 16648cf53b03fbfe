"""Diagnostics of fitted models: importance of inputs."""

from .importance import selectivity_ratio, vip

__all__ = ["selectivity_ratio", "vip"]
