"""What says what is in the packages: bill of materials, copyright, changelog, and the record of the build."""
