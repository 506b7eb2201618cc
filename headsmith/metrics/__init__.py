"""How answers are judged: formulas that training, export and evaluation share. It imports `headsmith.core` alone."""
