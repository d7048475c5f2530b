"""How far iCARMA's networks are from the certified optimum, and the commands that train and ask them."""
