"""What several drivers use. No driver, no device."""
