"""Give Me Some Credit: a learned causal model, certified recourse through it, and iCARMA beside it."""
