"""The bundled adapters, one library a file; each stands alone and is loaded by name only."""
