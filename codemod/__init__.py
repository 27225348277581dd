"""torch-codemod: a source rewriter for PyTorch code that knows which views are safe."""

__version__ = "0.1.0"
