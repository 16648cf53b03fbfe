"""The mathematics: moments, whitened problems, approximations, Tucker tensors. No estimators."""
