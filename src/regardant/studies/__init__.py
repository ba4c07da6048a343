"""Questions that take several trainings: settings, sizes, models and mechanisms compared on the user's own data."""
