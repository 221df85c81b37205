"""How good detection is: false alarms, delays and verdicts, on simulated series and on measured ones."""
