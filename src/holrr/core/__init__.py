"""The mathematics, free of estimators: moments, whitened problems, approximations, Tucker tensors."""
