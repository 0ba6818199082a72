"""The trained networks that come with Tengen, as NAME.safetensors; see `tengen.nets.shipped`."""
