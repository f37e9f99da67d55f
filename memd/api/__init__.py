"""The methods: one module a family, named as the methods are."""
