"""A run: its cases are dealt out, asked and judged, its answers kept, its reports written."""
