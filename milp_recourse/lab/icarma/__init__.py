"""iCARMA: recourse from two trained networks, a mask network and an action network.

This is the amortised part of the package: its recommendations are not proven.
:mod:`~milp_recourse.lab.gap.gap` compares them with certified optima. Needs the extra ``torch`` (torch and
zuko).

Source: the iCARMA paper, section 4 and appendices A.4 to B.2, C.2.
"""
