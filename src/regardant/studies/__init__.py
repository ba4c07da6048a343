"""Studies of several trainings each: comparisons of settings, sizes, models and mechanisms."""
