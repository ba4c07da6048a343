"""The English words of the digits."""

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
"""Words by digit."""
