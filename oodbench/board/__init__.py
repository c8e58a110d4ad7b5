"""Who stands where, and how sure that is; pure functions of concluded studies."""
