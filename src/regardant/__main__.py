"""`python -m regardant`: the same program as `regardant`."""

from regardant.cli import main

if __name__ == "__main__":
    main()
