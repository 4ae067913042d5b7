"""What a supervisor measures of a run: processes, chips, beats, progress, and the evidence of a hang. It
judges nothing: ``hang`` does.
"""
