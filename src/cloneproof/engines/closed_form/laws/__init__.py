"""Probability laws: arithmetic, binomial laws, laws of whole numbers, quadrature, reward laws."""
