"""The trace on disk and in a notebook, version 1: one JSON object that a browser reads without a library.

    {"format": "devtrace", "version": 1, "producer": "devtrace 0.1.0", "title": "In[7]", "recorded": "2026-11-21T12:00:00+00:00",
     "strings": [...], "devices": {"name": [0, 1], "simulated": [0, 1]}, ..., "findings": [...], "truncated": 0, "notes": []}

A table is an object of columns. A column of integers is a JSON list when short, else

    {"length": 1500, "width": 4, "lag": 300, "data": "<base64>"}

`data` is zlib over byte planes: all lowest bytes, then all next ones (`width` of them, little-endian, two's complement), of
x[i] - x[i - lag] (lag 0: of x itself). A lag of 1 is a plain delta; a training loop repeats itself step by step, so the lag that
fits one step turns whole columns into runs. A list column is {"offsets": column, "flat": column}.

Versions: 1 (2026-11) the first.
"""
