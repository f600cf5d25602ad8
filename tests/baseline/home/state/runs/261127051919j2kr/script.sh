{
  "masterSpecSameAsWorker": true,
  "name": "pretrain-nemotron4-340b-bf16-261127051919j2kr",
  "useGivenNameAsPrefix": false,
  "projectId": "4500105",
  "clusterId": "5b1f6c0e-2f4d-4b52-9a53-6d0c7c1f0d11",
  "spec": {
    "command": "bash -c",
    "args": "'set -eo pipefail; mkdir -p /nemo_run; printf %s \"$LLMB_FILES\" | base64 -d | tar -xzf - -C /nemo_run; cd /nemo_run/code; mkdir -p /data/llmb/pretrain-nemotron4-340b-bf16-261127051919j2kr/nemo_experiments; ln -sfn /data/llmb/pretrain-nemotron4-340b-bf16-261127051919j2kr/nemo_experiments nemo_experiments; exec timeout --kill-after=60 1500 torchrun --nnodes 32 --nproc-per-node 8 --node-rank \"${RANK:-0}\" --master-addr \"${MASTER_ADDR:-localhost}\" --master-port \"${MASTER_PORT:-29500}\" --no-python bash /nemo_run/code/start.sh python /nemo_run/code/pretrain.py /nemo_run/configs/launch.json'",
    "image": "nvcr.io/nvidia/nemo:25.09.00",
    "compute": {
      "gpuDevicesRequest": 8,
      "largeShmRequest": true
    },
    "environmentVariables": [
      {
        "name": "NCCL_NVLS_ENABLE",
        "value": "0"
      },
      {
        "name": "NEMO_LOG_MEMORY_USAGE",
        "value": "1"
      },
      {
        "name": "NVTE_FLASH_ATTN",
        "value": "1"
      },
      {
        "name": "NVTE_FUSED_ATTN",
        "value": "1"
      },
      {
        "name": "TOKENIZERS_PARALLELISM",
        "value": "False"
      },
      {
        "name": "TORCH_NCCL_AVOID_RECORD_STREAMS",
        "value": "1"
      },
      {
        "name": "TRANSFORMERS_OFFLINE",
        "value": "1"
      },
      {
        "name": "PYTORCH_CUDA_ALLOC_CONF",
        "value": "expandable_segments:True"
      },
      {
        "name": "NVTE_BWD_LAYERNORM_SM_MARGIN",
        "value": "16"
      },
      {
        "name": "NVTE_FWD_LAYERNORM_SM_MARGIN",
        "value": "16"
      },
      {
        "name": "TORCH_NCCL_HIGH_PRIORITY",
        "value": "1"
      },
      {
        "name": "CUDA_DEVICE_MAX_CONNECTIONS",
        "value": "1"
      },
      {
        "name": "NCCL_P2P_NET_CHUNKSIZE",
        "value": "2097152"
      },
      {
        "name": "LLMB_FILES",
        "value": "H4sIAAAAAAAC/+087XLbupX3t54C5d7ZUInMSP6Krazbuklum63zMfm4dzq2S1MSJLGmSF2CjKP6ambfYt9gX2TfZJ9kzwcAgpRkJ+02M50VZxKLIHBwcL7PAchhNpKP57ks8ihOg/niu3/A1YXrcH+f/sLV+Lv35HD30LRxe6/XfbL3neh+9w2uUhVRDtN/9//z8jzvRVrkC6GGeTwvRDYWxVSK1/JVJnbFMEsLkAuZq74YlHEyogcPlMhuUpHLYTyXHRHN58lCRGIcJxIeKVkUcTpRoshEXIg4FVk+knlH5GUKDUGrJeCaL4pplgpH8kQSlelwGvxFQbtz0fOnIksl9M6GUikxznIho+FU/P7tRwSrAG5HDGAROAc8hJ9Flg+ncLtptp2d4VQOr2uz/s9//JfQ64zSEXSPU4BLQ0SaFVNYVqt15Yy4EtMsGSkhP0fDIlnw0sbwOwOKwuXNslGZyP4YRhRxlnpI30hTDn8zOWlYlE/KmUwLJcTNNCqIDWacKKJrCTxIo5kUO78Wn6KklDTKUhvmjSUgrhmopzB9mUuxHCE/YCGKmdJqneph0BKJeVRMhSqBsJESV7RumQcKfhRysgiU/LmU6VCG8yiPkkQmV0HVawgtg2h4rc4/xDPA6Jm+vwySbBIW2bVMVTiXeajk8KpF09UQNuP5HtY/TCKlnoqbGFhXFqZ75wtmvMLV1GDGhZLJuNO6mca4OKYJ0GieRCBQKDHRCNiITE/LJIEns+yTVIE41V0B4L+/f/Ma6QIyDSYjHakOjQN5G/xFDgtClKSUF6SkuJYL1WeZuPVAlcbxxOtbmUDkokEivY7wcCw8ugUBXC6hOz4DXhFIhlVJx81Upi6LATUU2ULPA7wp4ij5sokQjAKZAuUBEk9hVTArrDwXIHiEg8Eebr4Qdy2+QKYoVTdgOkB1bp4aw8HKEUulnwqmSwkiBnKu9HRMUmdCFHxvKdZcVle4p1ZINAD4AMc5hNEQZRJodqwFSeCACAvDWpoB/iP9qCkYmANc/5WYRQsxkCKRY7ChJVgNlCVsRHxYpxgYCNVPBmVrXoEwZHFHmURyFeIaaIaczeW4VBKkPkpUhqzP2Ta3WKLFTVYCeLQOMOGClhuI30kwkBI5QKoCgppH6bXoskFTuDSFxCYcJS2UVbEwiBkDlbMVAsPeAkOD2kisZRwJGsjLNFKGuyM5jsqkCMQHGpargqcGmpG9ToH2BguEjPcwDMw4IBmPK5QRtdZV+ikexdGOmsVXRpgC8bIQErSPlWOX1QGo4WgIqiUhDW1S3ORZOgEBZ6IQmWEB8Wye5QVRNtWKtkewWmsYQavWIJHEmodIOgYIOCsYoAkzjMrJFBwd+NZWa5xnMxGG47IocxmGemKYFXpqmW/pNhQH+blI4oFp4T9uQ6rmIETmFn2Q+Z0p8yuX5pfKhtfS9lblQHtQ27JQjOAwA2UnV6OCaDA0WD7Tet4BqktQ0Szn7qOoiMg+S0PJqqnDwoQMVaFt5XHFYg6G2gw5TcFjhm9PP/xBnADSoJOzOZDYz73zP1/8dDG6vLh56F+cX9w8urhs/8a/CNY1tx+CEYLBp++fvXzZboXvP7x42wQHXX/RA+qdX5++enHX3M6M7Yf9jU/qQJ+dnp29eA5gfWP0wUoasww/yZZCvx/evHv1Hrs91EPgmTZ8egD0arWIfOJjipKYvsjzLPdffB7KOTKr3SfjBoL24X5zUkUVlRyTiLZ+a9nkA5v+KtOTD3kp23rqM4p3foBBdjayYGsCob6JhBwPyHM4gVEf/GdeD3n6YhQPi3No76BUXNZCm5WHrRbYGaB4NAoZBR/VhsC2MeJZg/A76ExrJy+O3QPxjpX2R3TwRFdwhQsUT2PkyHKwbYiLpyKVcoTkJNrSqhA4xQcK2IhkgFgnGilCp01PwaYh/WMFigtBw1D63L9Da9Lsw4ssiIOL7+G4iPHVUmFBMmL9E3FLqhZQWIhBsY7lUq2CfkWJ9lL8WeMaIFf8u+Yee9iF3QGa0JKFDw3rLFawlgn4+wcd8SD4SxanviJL6hNW7fZS48msAcJUSPgPHzIK3COkCDykJt/GGFqqtLBUAYZutzKzhEe6k7eJ2HqMkaQvoLqNp3HdwOtV+iOdMRDomNAwFY1pgriQsxqFNWZk64IxRJizqACxRTBOrw28qPTgFgf8Kl+yo2mE625cc6VxXaGyTgZoYuoBGVGZmxVozVod0dck6HAIUqnaawh4KyVr4E6kqgJkEicMFqogmQwExZ5IHmiIadCsgyEXBjQjsHNTq2toE1HVNOHHK3rVET5yuCOSWBXttpAJIHR+aaRjtTvJA4UAPs6LOpWC8vp8N+Y1zJDH2lwDFNNCINodokHbYWMNy2AiC59FuCNulxVbQNizG4ieUIlpxdxp6c5gXAktg7otnVkKcMkpjGcPaoadnGjfwaPIxTXlkFev7YD4txOLDBLCIRKtxCWSntQRYRAEhnaOs1+22/fL8y3J0BLEmUzmqJzNFcNoa8mu5EPHzNoUacYPQaYGsqaOFBox5QM2MbCwOsdriyHaUEt/vaLgMy3tba0WVBjQJqXvWDVSBHBMVg90MGzrI+JqHI9GiQzechBw1bGZXZW/6/zcuiXX4VfOhiN3jRjynkOpED0AuAxIW/thqHuFodd2bGSLiykLx/pxlA9QaGl65SjOHfH15rgSbWQJIfg1JpI4QKUk3xDOhcHQJQU+Ndqg7ZP4owI1hfwCVjWGoAjEyUZFNlERt5pCIIOQXZE9sqnPPIfApTDhUcNT1KIwV5IJg2UgbnFu8ICCwl1qdc2sSRrZzLqr7aMEsWEm66qXbQxvw9g+VIWcgzBDfIYrpaA3GMfpCHjmV8ad6gIdyrI6XDtq8NpQ2piyMCpsG03R5jmwBhTPfe/80nG1BO+EnjtKhFFSSOGHX81byQbQFmxI7jzrMJqawcmqE+euZNH79/AjxMiLBhhTQuM8BzhNhs8qauIFvpPodB5STcjF/bIaHFJEzNrGWItfnVCvL8OMxxjUbnHg0iKnHCCEBHJrBRtLelCqWTT3HZSY09q4JTJlQliYtDwG3NcTPBK9S5jlnPC6tHJZ1IWSJKFPlMQo/HLF4P2kA2ay0atFklr1Imbi1+sFxr6h5cDZcHE8q+u6sCXAcn2h0AiBOHpNb2MsGv8wzHRF+rzX3+ldaqauEr4pw+7Q9vq5QmsDbW+9LsV5FMUAFYC1toARJauoqU5SZQMtMCuW3C/TkfxsSIxceaDqZTRbU6X8TfsaXQ1b62A0bwrmELtgyxQyhSglrvQjpm3iF/5CfhHulw2nS41aeZvRGEkx6XrKc9yjQw52ddXRBGWTHSNxfDY6mrarFk+TWJtY+L0i0phPs/PSoQclAtzC5V9cvKXR2uCyabIYzfO1FhjjjXYtmKHnl3dlkavpDM9Q7Q5wRPg3hrSte4NZO5Q4W01bleJOmFN9cc+i2XzV4zgdIixdHmsw7BQtHA6gnTC0U6HQQNK214WjBlBLBw7SvtjqYmdzzaIuQivh+AqXXF9bd+AkvEx+MHZA82agV7lUdxpTNF+dSIVsHnwGV8uWTSnfPLvPkZHiYQiOgwdSb1VUYYGpFUAmpesClmIm4dgRoa5P6Dm/cFKM30D3DTy3BKFntcUHly4cyDapwlP7Dx9WksLWDmLoELcRT6rqa6CJz1sMHGdjn7r98U1z8IyoXUeCK4EshLajTgjamhAdUUPHuGPLvjvs1WlVgH1gk3VTG4gwzM0H5XiM2zE1V9Hh57W2vgkcwVfLn0tw3k4upvdv32dUdGc+6owMg7uOoCxKOjuopsjubB1X1QTcj8vQsmt/qISaRjk53Gih9H5brAKzzro9rOrLOoHEEtWqmSwWc3mXmYTVQ0ZQ3MVyncHJz3OZx8ifKAmcKrjXDjSQ0GkNi0yzjje2wMnHKFi6q0GPsu9wnqkijNO44KBBiH/B1aOo7KA46jHK7q6BI5zEn2TqiuA96COWEK37XyDYWoY7jLOVxaYVqgKUlXgwqu/IleCXc6pSmf28K9xe1X0KHUGyj8eCUGVhzFaN2WUxBOBb64IZEtjSjo1YKN6hyjuKte/1tcLWsuBKqe7gP/+pJaGvqOl1VvyQwdo25aIgqtTCNVqddqCU4uLAsjHgZeC5gS20V4Pg2bqaypfHSprELsjVBNWNPDiQUvMkBm9fm10rHhhiSuJsNTEv1pZ9mmZcL9YYcjLraunUKjm+OhETnSW6E7RWVFfLZCPjXBs+r6lT1uLfMk3wYEnDEBKivGNCRw8GCzJ6xmXSSRM5jLCG4Oya4iAsIcRF0DBYbgBNudlX5bOaalzjrwXAjWDaeFccF4ThOA2zHKZWYchVvFrfKnn5Moxg5TJZB3oTgppLNY9f+TAgFOWUVfGMdFcnMFUgqaNwS3qYC80HZzhcvMEjMuLq4cPrGximrjTzMkXFROTbIFK481Jk1e6NOWBD+Q3jtq5abNxzw5HURn+KcuXjLnf73AvJkIehd1mdVYpNzAF0m+UZbgWPRdWTw28D4rLKvPqWRjAL/PSruqc9HoQ7PgaXWiEaABTo80/MznGg4kka4V60b0a0g6qjLZ5WVQPixy8QyCNi1VaTWZMzScy7/MF1nNImFC0lePvm/csPL9+8Pj0L37wL//jiTz+9efe8wz31Xfjm9dmf2summYnShe8AVDzmx1MLZQMiDVs0yGV0vZIoQhR66+EZCm9pA62aKmg78rDK5iEuyrIEaPkDhERc9qUUgPphCrBSEEEzQCe+GjFXzCd46AyWkU4j2niEzvDIyqnGHKfz73fyBBeMYn1BOO0wKUcytOUJ86Nt1bSR4juKWuQ1HUW09bmIus00d1I9NYfm9EbQQkd6OpBsrA13EozdN38RhQ4qiWNoPJ2eUjsiSk2eZ9cAlMkjPGLkE+Lm5ELdzBCHOCPkilMBUR1uN9HZEh0Xj6NcR6A6wC0glOnbVZGPxTM+1xIARHx0hZaLvhV5Sj7dLpSOJJpIQy1UwIxTnFbTU1MMTCdxKjd3zaNUYWoh85C76nGRgsi7L4pynshz/p/yU3OO4/wcUmMm/yX8CoIAjYpv1cX33i4+EB5Y950NRlGfsQ6cXYV2x+n/7OPz05XOumswLEdRrffrZ8/OnN4QXHD6hoVMQpTH47ggHQ4TA8lvw+UC+lBRQLxgClRgmSQbUX7948vnLyFfyiF6zmEY/9BdKuPKJQmgKGorE9YCoZJadVwnUOUc9w3UyskMx6L5GhvMjAEcLMmcF6pXos21IDdqk1+7Z+FpMWe0fbtjAIz0HuP5nsf85DGfnnqsx3lGi8Uv9WjoR40WuVzCCM9kdVjwFch2nsrEBJEqWlQRN594BI3xeT9cpsNsBPJ/4kVqGMcwI+qQPYbBhIVYmU/cKBkBr/3c+yPPwPF08PA3F8q/GD26CM4vRsHlo/aF8joEJcATH/5+9/iwXQsGCeZ575LzbYRPeo2L1KSiNDSczEuIP0DNs7IIwZiPkyzCnK/XDbqrQeJbHENWGk+n1ajT0fE7GQGYtHZObRzFiapsxFeYh5/LmEo91TGt4PmLH19/PDtrfbXMkbzWYb0lTkGOZ5FFs7lzhpuEqgC+nRACdAMUOnGHvnz7gtohX+BeVXxQy6Xo3EescItPnDASeLJqVqbxMCqkof6J5UL7vHsZjCTIDfivshjvHCFS+mCukxjonMvB6QODePF5HueuatrVQ9SQJD7n0Rw+oK7dRDGmkqDgfdyr0AfK9dEE3IfVrpl1qDpBBW6hUf1H2XMjFp6U23E9WPbp8tGCBMwRqj1IYIi/fU2jjj6gh1YdAtWC3O7KFjqaf+ZJwCWc4CaHRWA0jsCWF6kXkOrhWFzujTmb2DxjmmQQZGBauAn+OCnV1DeOtImuroAiplVmtcaifDBKQ2R1tEPsnF2RfLB5uTKaRcdCh2m32+uLI/Hf/ym0if5Dr9sVR93f/0784Xev9q6ecvLM50QJDG9UcEXq1cvfg//+FOOBbqrQkxXXCmz3dxd0sEcl1C0b98XVk40TEsjeJOh1J4OregVKR+Z2SwwTAI7ZgWhoiav9LNRX2gFnInJejWRtnhC6mWYJiQkYRz5ckXuIOhjDvvCDR79piwv/48eXz8FxdghsQ1B4agID5rD2iFP6aI7hjQ/9HM3CfU0cSZJKJYA6ChfqkY+EuHiPtvjRcyIx/CC0DCKr7o5mPN/B/UUS/FUHxzjNs7nf3owrCDkMXuLRp7yAVZmUF1MCTGvQXHAMoT2lAoNTpgXXyJfIW52JWqeOzMBAOkA7TCVpGtdwKl5NOG9R6J1S0oPgAZou3PonTAA8rJmRanof5rWztXBHWKqdMeiHrpYiV17JSVTk4KKfZTmmB3Sw+qm4op1WvTVzpU9d2LxjNcnQEG1yUTlyE2rw4YhN+cUDrA4+aLtx1bI+voboHYBmuh+wChZ0B0R0lE44r4+FylTvvdDrOVr9bpdsBpDiN1Fy7a8epbiD9Hfv4REXMBtd2XDnqnND+t1dUZ56U3CH6yNkQXgR3+X57com6xLPLNOvus42C0qMSn0qG0MScKQSV5T0aSuvDjEemSo6br8jme8GZt4esa9JKHGLw84toMvaFM199kZfgIiQ71sAF6B4P7JRgfJW2FDfV3QSYp5z/TGkuxgUaGtiipKte2dixV8zVXMKTIDJalnYnJJXHFufjePONIWkZHjQQ1K84ZTUmUuAFr/sYUIom5fWD4WR/WsezcPoXuEbDBTan3AFxC2H+x8Wcz7i13GO+znL5W3BkzUyi7g3SsqQ2uPGk07v2ytbmo4Q0AYvAycCYGpRDsBx4XGU7ufz7s5xtDO+fERFAvhn/AUEmbkRA651t6syCMNfKVYaqtttWVOoMAXClVKFu+NqXcttVQgkiwhmr1+1VQu3ud4MIjjf2XmuH8Vxz4Z8wCSDpIFfb8TECSul+lUsFAb5GQsaWMA1AsBdT6py63mf/fa5p1+T9C71aYBiqmode33KuxhCY4edVINeAjoRmYIY9VOMRp9KGO/PPr57Fb599+bZy+dApubjd6ev/4jM6noQ0uL+aderwIXZOCSvvAns2Ztnp2dr4dKTcBN0bVV5lUBCP9G5rWqLX4seF89xzxxX64i2jqAhO9KhuVeqaALquun11l/ufRU1CIKLdFXwd52j9TYAdQo91anUSycmNUfWuUwKy+lvTt82J/Wcnq1J6m3mp9EysZuG4L6oUeXxWNFppnf+m/erFmTNptpamo89l6Zsre3JTEtLYDEy1aDaFv8mKib315ObsznRbRz/1y842MOt8i6y2tNi7iniFQLcc7D171i3ufRa9hqNKaQmpXRDIdK0jYmoFnNMPcmYujEu6NQj4a3MvCbNbNT7SQtWEomayq8KnVPbqc93f5mcWaGR9ms2GskEthePfOoaM9kJMNhAZzDsfcyzKb1GnOcZ1oqIJphma/9avRtHlSN+IXEC41uGHGiJfbLteAeG8xPaU9CLb/f+Py70Mdeh1PQfNMfd33/odncPnjS+/9DdO9jffv/hW1wDSFlPvLSc4Wt76InmJeoZNX/v+5W/fLwPer2zM5Oz9c88VJbv8RkYv1I+Re2AiOyzHOpW7/vfek9BC1pyOM2ER+8Ff4+jTWluQLXbIhOReP3x1Skl3p749b/utggKjm99t73+r/Wfjic9nidRSpHHt9f/3YPeQfP7L7u7B1v9/xbXLTgj3Abnl7/xOw6cSdxk+TW+zIpfTMC6D5Zr9nf29rsDjzfKvBwGRUpih92DoLdr2lX8V2p0+4J7xqZpr9s1TSM8S4GNg3Hv0I7F+jQ07h4cOi0QfWLHGxldm45z9NpUMfoU5XGU4pcd8Msd+nG9EdqW+MBDi6KgcW+XbjFooE+SkKXpiyNqNR83idWsIkcxN8+xh3szxJuevpHuzQhv9g1G9GRX380Gyuk4obtD03US4TNLAPlzCBEqguoem8YkWkA2B23Hh3Zx+qzl34azQ7tvjXY5AFJPCXGDhSdVEc+iQlaLwT36ELeNQhy/H+xZmNkNNe0FR8fd/d7e4e7RUe/J0ZPeE91hGk+metDR7vHB0eHek17vaLe3e3RgloW7LyTpdD4hNJKtH0cQqWd5TRF+CxLf3Rco4gLlt4MSKz7T/kGHsBPKDHc/fYP06vZ27cTjMpzTd072j4Pjo72D3h6EPr2Dg0ND8VG04KG9Qn9DB4l8vBscdLvHu4dHe93eQdeAK8ZJNufurHD7x4DK3uHx/v7BcXe3e2w4R68Kh1VvFc3mpHdHh0CXvcM9IOPB3u6+FR7QvJChI/OOjnU7Q8Bt+DJB7nuTPCvnciR+LiVWbDsCXxQV+NJoSubFch3CCHwn0WEvcDucDJCRT4KDXnd//wn8585PDw+Pgu5BD9j4ZN88HEbzaBgXC+5w1DWSK3OsESNW47hQ1dRVxM4j9ve7XWMOwmlWkoD2DoDCu861r3UsGyRyhj3OL6mF3lKC24Nua9n6J/b/Tu3hW/v//cODbtP/H+w/2fr/b+b/zSvC2sQF7tdgkmQW6KP5gbV/IVq+vqk7hPycDJ5ny3+VckN2EdZdr25c64BJ33M0KrgPg1k7PsKcwqqweYvY8XX6m2Cz6HNYqWSn/vBTlOh3vNFT5p/oK1krvZJ4Fhf4olI4wB1QwnqlTzYJqZYepna63mqfiUS3McZaeeOhTPE4VljZIo5x3K4wPoCHjcgGW8GaqiwfZFE+arjuqIiCWTzMM8Y91LFYz30+SbKBWZzpYJ049UDWMGPZMTDful23j/bvE3oX3HHx7lcoNnYiCOTOYPrcclEI5ytpK4KYJnN7Cg7PlGRpBSIsCzx1M5FFmM60pyTQ5tyX/UqZLRF5vK/IQg8k9KojYto/0jfH4OlrePphBSK6mGwYDQwJIQAA26Uf8lHWZY0ma9drPkrWoMia4ZqkyBsnjFrXZRqPRjK1vD/atzq38kU/lqSQ12sCXzPyaNOoOSg7Fvy+dpw+vLQyoLdpwKc4L0qQ1Xsm7G1cH72uU2wads8oTZzmMEff7v9CorZcjf7VlwvNjvkzEOg3YFCSaF59OLGYhyjoYcYP/i5YGgYhBoY3okAXlSLM5hBWkxKhJVs/yTwpJzHo4CSPRmDtRyUsEczDeL6327BaBM1IYqmAEjZTi26iXFbT1WeqSbCxjuUoCmHK+XSDFbV0x4kgfszTCRqu4fWK3a2BB/uoVAg+Ks/mi3BcEnYxWDrUxMLG/WtnwbfT5vehMxrNA3Y04MbAjqRILKTd1w1McEeQxqkvGYgHZsNy8CVdx2o0D0dZiVTmM2VfMgrPMQLPj0I6fzzPgBzDCNDdMLaSzB/O3rxVryCnKnOJsYEVyztMfwJpW4HHJYP5Qp8KNvACzjvMfX8T+LusP5sEO+ets3Ww/kuRtsPS8QBotu8Bgl3WD657GRtbeXUfgkHPP2dqsb221/baXttre22v7bW9ttf22l7ba3ttr+21vbbX9tpe22t7ba/ttb221/baXtvrG17/C9za/moAeAAA"
      }
    ],
    "backoffLimit": 0,
    "restartPolicy": "Never",
    "storage": {
      "pvc": [
        {
          "name": "data",
          "path": "/data",
          "existingPvc": true,
          "claimName": "llmb-data"
        }
      ]
    },
    "distributedFramework": "PyTorch",
    "numWorkers": 31
  }
}
