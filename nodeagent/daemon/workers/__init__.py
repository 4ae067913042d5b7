"""The processes that host drivers: started, heard, ended and replaced."""
