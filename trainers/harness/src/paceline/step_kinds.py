"""What may end a step of an unmodified script: the values of `--step`, and of the manifest's key `step`."""

ENVIRONMENT = "environment"
OPTIMIZER = "optimizer"
BATCH = "batch"
MARK = "mark"
CHOICES = (OPTIMIZER, BATCH, ENVIRONMENT, MARK)
