"""`python -m raybench`: the same door where the console script is not on the path, as in a Ray job."""

from __future__ import annotations

from raybench.cli import main

if __name__ == "__main__":
    main()
