"""What all figures of benchmarks look like: import pyplot from here."""

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        "svg.hashsalt": "gapless",  # the same rows give the same file
        "svg.fonttype": "none",
    }
)
from matplotlib import pyplot  # noqa: E402, F401  (after the backend is chosen; for who imports it)
