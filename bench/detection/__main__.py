"""Our detectors beside others: `python -m bench.detection`, see `detectors`."""

from __future__ import annotations

from bench.detection.detectors import main

if __name__ == "__main__":
    main()
