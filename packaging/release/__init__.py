"""./dev release: checks the tree, builds, signs, lays out the repositories, and tags. It uploads nothing."""
