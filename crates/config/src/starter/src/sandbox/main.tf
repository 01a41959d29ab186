# Nothing is made here yet.
