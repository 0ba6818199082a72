"""Networks as ONNX, for programs in other languages."""
