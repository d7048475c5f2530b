"""Branch and bound over the action box, for many applicants at once.

``stack`` holds fixed programs of one structure as arrays, ``relaxation`` bounds their logits,
``dual`` turns those bounds into proven costs, ``interior`` finds the multipliers, ``contract``
shrinks boxes, ``branch`` splits them and ``search`` runs the tree. Arrays have one column per node
(nodes last), so that every matrix product is one call for the whole batch.
"""
