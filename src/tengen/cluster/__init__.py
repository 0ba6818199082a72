"""The same run on many machines: a learner here, self-play as Ray actors wherever the cluster has room."""
