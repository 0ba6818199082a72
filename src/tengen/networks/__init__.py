"""The trained networks that come with Tengen, as NAME.safetensors; see `tengen.run.shipped`."""
