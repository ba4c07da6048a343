"""What is decided and measured before training: precision, kernel, processes, compilation, and the plan of its cost."""
