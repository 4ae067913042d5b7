"""The ConfigMaps that MindCluster's ClusterD and Volcano read, byte for byte as its own writers make them."""
