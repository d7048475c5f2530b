"""Studies of interviews: simulated people, whose wishes are known, answer them."""
