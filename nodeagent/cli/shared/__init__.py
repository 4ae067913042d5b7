"""What several commands share: connection, options, output, errors."""
