"""iCARMA: recourse from two trained networks, and how far it is from the certified optimum.

The amortised side of the package. Nothing here proves anything; :mod:`~milp_recourse.lab.gap.gap` asks the
engine. Needs the extra ``torch`` (torch and zuko), which nothing else here does.

Source: the iCARMA paper, section 4 and appendices A.4 to B.2, C.2.
"""
