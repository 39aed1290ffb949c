"""Answer -> verdict: what is due is given; nothing is asked, and the oracle is not loaded."""
