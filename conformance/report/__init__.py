"""What people and programs read after a run: one wording, four formats, files.

Everything here is made from a ``Report`` alone; nothing is judged, proven or asked again. ``text``
words a verdict for all formats, ``causes`` orders failures by what has to be mended first, ``json``
is the format that programs read back, ``files`` puts the formats into a folder.
"""
