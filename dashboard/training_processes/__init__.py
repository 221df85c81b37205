"""What documents say of a training's several processes: its ranks, its DataLoaders and their workers."""
