# Completion of nodeagent for fish. The words come from the command itself, and from the running daemon.

function __nodeagent_words
    for line in (env _NODEAGENT_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) \
            nodeagent 2>/dev/null)
        set -l parts (string split -m 1 , -- $line)
        switch $parts[1]
            case plain
                echo $parts[2]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
        end
    end
end

complete --no-files --command nodeagent --arguments '(__nodeagent_words)'
